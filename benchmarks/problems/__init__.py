"""Problems that methods are compared on, one file each."""

"""``discreet serve``: analysts who never see a row send settings, and receive models with certificates.

Nothing else imports this package; the command line finds it where the extra ``discreet[serve]`` is installed.
"""

from discreet.curator import limited as limited

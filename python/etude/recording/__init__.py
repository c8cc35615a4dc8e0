"""Records one step of a running PyTorch program and times the steps around it.

`recorder.Recorder` decides when to record; `steps` reports the ends of steps; `periods` determines what a step is;
`signature` distinguishes steps; `step_recording` runs the observer and the profiler for one step; `host_trace`, `job`
and `facts` write the capture. `pacing` replaces the recorder when `etude compare --run` runs the program's steps one at
a time. No module imports torch at import time.

The package imports nothing from `etude`, so that the start-up hook can load it under a private name, next to any
`etude` of the recorded program.
"""

"""Records one step of a running PyTorch program and times the steps around it.

`recorder.Recorder` decides when; `steps` tells it where steps end; `periods` finds what a step is;
`signature` tells steps apart; `step_recording` runs the observer and the profiler for one step;
`host_trace`, `job` and `facts` write the capture. `pacing` takes the recorder's place when
`etude compare --run` runs the program's steps one at a time. Nothing here imports torch at import time.

The package imports nothing from `etude` so that the start-up hook can load it under a private
name, next to whatever the recorded program calls `etude`.
"""

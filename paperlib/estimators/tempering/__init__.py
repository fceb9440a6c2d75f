"""Parallel tempering: ln Z from chains at all temperatures, which swap their temperatures.

================  ==================================================================
`tempering`       `parallel_tempering`, and what it returns
`run`             the rounds of a run, and what an interrupted one needs to resume
`replicas`        the chains of a round, and what they have recorded
`temperatures`    where the temperatures are placed
`bennett`         Bennett's ratio, which estimates ln Z from the record
`warnings`        reasons not to believe the estimate
================  ==================================================================
"""

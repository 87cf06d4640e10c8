"""Networks for other programs: the machine of modes (`machine`), a C library (`library`), an FMU (`fmu`)."""

"""What fedkt asks of the machine: files, locks, walls, processes, versions. It knows nothing of federations."""

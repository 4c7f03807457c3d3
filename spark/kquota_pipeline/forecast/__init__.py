"""When which volume reaches its limits: hourly series → trend of the saw-teeth's crests → time, with an
interval.
"""

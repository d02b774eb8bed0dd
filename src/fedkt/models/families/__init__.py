"""The families of models, one file each or a few that belong together; `fedkt.models.catalogue` lists them."""

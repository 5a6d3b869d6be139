"""Study of the guide's constants: each is halved and doubled."""

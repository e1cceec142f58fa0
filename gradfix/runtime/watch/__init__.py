"""`gradfix run`: a script of the user's under watch, and the facts about the error that ends it."""

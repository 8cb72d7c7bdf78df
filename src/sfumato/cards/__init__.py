"""Cards of objects in a notebook: pieces of HTML that every card is made of, whoever wrote the names in them.

A card is markup and style alone: no script, no resource from elsewhere, and colours that take the notebook's own for
text, so that it reads on light and on dark. What a card says stands beside the class that it shows.
"""

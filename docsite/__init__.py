"""What the site holds beside written pages: pages made from the code, executed notebooks, pictures, a link checker."""

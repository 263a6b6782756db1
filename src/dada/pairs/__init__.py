"""One pair of files: read, upsample, write. The work behind the commands and the page."""

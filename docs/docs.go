// Package docs embeds the documentation: the Markdown files of this directory.
package docs

import "embed"

// Files holds the documents under their names, such as guide.md.
//
//go:embed *.md
var Files embed.FS

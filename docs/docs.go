// Package docs holds the documentation, embedded: the Markdown files beside it.
package docs

import "embed"

// Files are the documents, each by its name, such as guide.md.
//
//go:embed *.md
var Files embed.FS

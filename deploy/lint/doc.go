// Package lint checks the files in deploy with the tools and the libraries of the programs that
// read them. It is a separate module, so that the server does not depend on these tools:
//
//	go -C deploy/lint test ./...
package lint

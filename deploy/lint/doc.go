// Package lint checks the files in deploy with the tools and the libraries of those who read them. It is
// a module of its own, so that the server does not depend on them:
//
//	go -C deploy/lint test ./...
package lint

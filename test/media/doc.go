// Package media stores real speech in a running server and judges what comes
// back with the tools that people use.
package media

// Package media stores real speech in a running server and checks what the server returns with
// common audio tools.
package media

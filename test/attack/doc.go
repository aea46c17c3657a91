// Package attack attacks a running server. Each file covers an area, and each function is one
// attack. The name of a function contains the row of its attack in the project's threat table.
package attack

// Package attack attacks a running server. Each file covers an area, and each function one attack.
// A function's name contains the row of the attack in the project's threat table.
package attack

// Package attack attacks a running server in every way it must withstand. Each file covers an
// area and each function one attack, named after its row in the project's threat table and what
// it tries.
package attack

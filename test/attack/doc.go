// Package attack does to a running server what it must withstand. One file an
// area, one function an attack, named by its row in the project's threat table
// and what it tries.
package attack

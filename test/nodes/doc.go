// Package nodes runs several servers on one database and one store of sessions,
// behind one address, and looks whether they are one: what is begun on a node goes
// on at another, what is ended on one is over at all within a second, and of many
// who ask all of them at once, one wins.
package nodes

package calls

import (
	"encoding/json"

	"github.com/selvage/selvage/internal/problem"
)

// Some events list all members of a room. If a list were too long, the relay would close the sockets of
// all members, and nodes would not pass the event on. A room therefore has a limit in addition to the
// setting max_members, which is at most 300.

// MaxListed is the maximum size in bytes of the list of a room's members.
const MaxListed = 224 << 10

// maxUnnamed is the maximum size in bytes of a member in a list, without its name.
const maxUnnamed = 640

// MaxSize returns the maximum size in bytes of the member in a list.
func (m Member) MaxSize() int {
	name, _ := json.Marshal(m.Name) // a string can always be encoded
	return maxUnnamed + len(name)
}

// hasPlace reports whether the list of the room's members has place for more members.
func (r *room) hasPlace(more ...Member) bool {
	size := 0
	for _, m := range append(r.show().Members, more...) {
		size += m.MaxSize()
	}
	return size <= MaxListed
}

// errNoPlace is the error for a screen or device that the list of a room's members has no place for.
var errNoPlace = problem.New(problem.Conflict, "room_full", "the room has no place for another screen or device")

package dashboard

import (
	"errors"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// maxRoomsOfCall is the maximum number of rooms that the page of a call offers.
const maxRoomsOfCall = 100

// roomsFor returns the addresses of the rooms that a call between two parties may be moved into,
// sorted by name. It returns none for other calls.
func (a *callPages) roomsFor(v *visit, r calls.Record) ([]fabric.Address, error) {
	if r.RoomSession != "" || r.CalleeLeg == "" {
		return nil, nil
	}
	found, err := a.Fabric.Addresses.List(v.r.Context(), anyCaller(v),
		fabric.AddressFilter{Type: fabric.TypeRoom, ByName: true}, page.Query{Size: maxRoomsOfCall})
	return found.Items, err
}

// moveCall serves POST /dashboard/projects/{project}/calls/{id}/room. If the form has an address,
// moveCall moves the call into the room at that address. Otherwise it moves the call out of its
// room.
func (a *callPages) moveCall(v *visit) error {
	r, err := a.findCall(v)
	if err != nil {
		return err
	}
	if a.Move == nil {
		return problem.NoSuch("page")
	}
	address, done := v.form.Get("address"), "movedout"
	if address != "" {
		done = "movedin"
	}

	err = a.Move(v.r.Context(), v.project.ID, r.ID, address)
	switch p := problem.First(err); {
	case errors.Is(err, problem.NotFound):
		done = "callover"
	case p != nil && moveNotices[p.Code] != "":
		done = moveNotices[p.Code]
	case err != nil:
		return err
	}
	return v.redirect(v.base() + "/calls/" + r.ID + "?done=" + done)
}

// moveNotices maps the code of each error that prevents a move to the notice that the page shows.
var moveNotices = map[string]string{
	"no_media":       "movecodec",
	"no_room":        "moverefused",
	"not_movable":    "moverefused",
	"room_elsewhere": "moveelsewhere",
	"room_full":      "movefull",
	"room_locked":    "movelocked",
	"room_not_open":  "moveclosed",
}

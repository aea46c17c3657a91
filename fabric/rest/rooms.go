package rest

import (
	"net/http"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// roomAPI serves the sessions of a project's conference rooms.
type roomAPI struct{ rooms *calls.Rooms }

func (a roomAPI) routes(by *credentials) []route {
	return []route{
		{"GET", "/api/fabric/room_sessions", by.project(respondPage(a.list, calls.RoomSession.Document))},
		{"GET", "/api/fabric/room_sessions/{id}", by.project(respondOK(a.find, calls.RoomSession.Document))},
		{"POST", "/api/fabric/room_sessions/{id}/end", by.project(noContent(a.end))},
		{"GET", "/api/fabric/room_sessions/{id}/members", by.project(respondPage(a.members, calls.Record.Member))},
	}
}

// list serves GET /api/fabric/room_sessions, newest first.
func (a roomAPI) list(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[calls.RoomSession], error) {
	query := r.URL.Query()
	f := calls.RoomFilter{RoomID: query.Get("room_id")}
	switch status := query.Get("state"); status {
	case "":
	case "in-progress":
		f.Running = true
	default:
		return page.Page[calls.RoomSession]{}, problem.BadParam("state", "state must be in-progress")
	}
	return a.rooms.List(r.Context(), by.ProjectID, f, q)
}

// find serves GET /api/fabric/room_sessions/{id}.
func (a roomAPI) find(r *http.Request, by fabric.Issuer) (calls.RoomSession, error) {
	return a.rooms.Find(r.Context(), by.ProjectID, r.PathValue("id"))
}

// end serves POST /api/fabric/room_sessions/{id}/end.
func (a roomAPI) end(r *http.Request, by fabric.Issuer) error {
	return a.rooms.End(r.Context(), by.ProjectID, r.PathValue("id"))
}

// members serves GET /api/fabric/room_sessions/{id}/members. The member that joined last comes
// first.
func (a roomAPI) members(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[calls.Record], error) {
	return a.rooms.Members(r.Context(), by.ProjectID, r.PathValue("id"), q)
}

package rest

import (
	"context"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// A Mover moves a running call of a project into the conference room at an address, with both
// sides. If address is "", the call leaves its room. See calls.Calls.Move.
type Mover func(ctx context.Context, projectID, id, address string) error

// moveAPI moves calls. If this server carries no calls, move is nil.
type moveAPI struct{ move Mover }

func (a moveAPI) routes(by *credentials) []route {
	return []route{
		{"PUT", "/api/fabric/calls/{id}/room", by.project(noContent(a.enter))},
		{"DELETE", "/api/fabric/calls/{id}/room", by.project(noContent(a.leave))},
	}
}

// enter serves PUT /api/fabric/calls/{id}/room.
func (a moveAPI) enter(r *http.Request, by fabric.Issuer) error {
	in, err := web.Decode[struct {
		Address string `json:"address"`
	}](r)
	if err != nil {
		return err
	}
	if in.Address == "" {
		return problem.Missing("address")
	}
	return a.moveTo(r, by, in.Address)
}

// leave serves DELETE /api/fabric/calls/{id}/room.
func (a moveAPI) leave(r *http.Request, by fabric.Issuer) error { return a.moveTo(r, by, "") }

func (a moveAPI) moveTo(r *http.Request, by fabric.Issuer, address string) error {
	if a.move == nil {
		return problem.NoSuch("call")
	}
	return a.move(r.Context(), by.ProjectID, r.PathValue("id"), address)
}

package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// numberAPI serves the phone numbers of a project. Phone routes assign them to resources.
type numberAPI struct{ numbers *fabric.PhoneNumbers }

func (a numberAPI) routes(by *credentials) []route {
	const numbers = "/api/fabric/phone_numbers"
	return []route{
		{"GET", numbers, by.project(respondPage(a.list, showNumber))},
		{"POST", numbers, by.project(created(a.create, showNumber))},
		{"DELETE", numbers + "/{id}", by.project(noContent(a.delete))},
		{"GET", numbers + "/{id}", by.project(respondOK(a.find, showNumber))},
	}
}

// A numberResponse is a phone number in responses.
type numberResponse struct {
	ID         string  `json:"id"`
	Number     string  `json:"number"`
	ResourceID *string `json:"calling_handler_resource_id"`
	CreatedAt  string  `json:"created_at"`
}

// showNumber converts a phone number for a response.
func showNumber(n fabric.PhoneNumber) numberResponse {
	shown := numberResponse{ID: n.ID, Number: n.Number, CreatedAt: iso(n.Created)}
	if n.ResourceID != "" {
		shown.ResourceID = &n.ResourceID
	}
	return shown
}

// list serves GET /api/fabric/phone_numbers.
func (a numberAPI) list(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[fabric.PhoneNumber], error) {
	return a.numbers.List(r.Context(), by.ProjectID, q)
}

// create serves POST /api/fabric/phone_numbers.
func (a numberAPI) create(r *http.Request, by fabric.Issuer) (fabric.PhoneNumber, error) {
	in, err := web.Decode[struct {
		Number string `json:"number"`
	}](r)
	if err != nil {
		return fabric.PhoneNumber{}, err
	}
	return a.numbers.Create(r.Context(), by.ProjectID, in.Number)
}

// find serves GET /api/fabric/phone_numbers/{id}.
func (a numberAPI) find(r *http.Request, by fabric.Issuer) (fabric.PhoneNumber, error) {
	return a.numbers.Find(r.Context(), by.ProjectID, r.PathValue("id"))
}

// delete serves DELETE /api/fabric/phone_numbers/{id}.
func (a numberAPI) delete(r *http.Request, by fabric.Issuer) error {
	return a.numbers.Delete(r.Context(), by.ProjectID, r.PathValue("id"))
}

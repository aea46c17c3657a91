package rest

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// An addressResponse is an address in responses.
type addressResponse struct {
	ID          string   `json:"id"`
	ResourceID  string   `json:"resource_id"`
	Name        string   `json:"name"`
	DisplayName string   `json:"display_name"`
	Type        string   `json:"type"`
	CoverURL    *string  `json:"cover_url"`
	PreviewURL  *string  `json:"preview_url"`
	Locked      bool     `json:"locked"`
	Channels    channels `json:"channels"`
	CreatedAt   string   `json:"created_at"`
}

type channels struct {
	Audio     string `json:"audio,omitempty"`
	Messaging string `json:"messaging,omitempty"`
	Video     string `json:"video,omitempty"`
}

// showAddress converts an address for a response.
func showAddress(a fabric.Address) addressResponse {
	channel := func(name string) string {
		if !slices.Contains(a.Channels, name) {
			return ""
		}
		return a.Path() + "?channel=" + name
	}
	return addressResponse{
		ID:          a.ID,
		ResourceID:  a.ResourceID,
		Name:        a.Name,
		DisplayName: a.DisplayName,
		Type:        a.Type,
		Channels:    channels{Audio: channel("audio"), Messaging: channel("messaging"), Video: channel("video")},
		CreatedAt:   iso(a.Created),
	}
}

// addressAPI serves the addresses that a token may reach.
type addressAPI struct{ addresses *fabric.Addresses }

func (a addressAPI) routes(by *credentials) []route {
	const base = "/api/fabric/addresses"
	return []route{
		{"GET", base, by.bearer(a.list, fabric.SAT, fabric.Guest, fabric.Invite)},
		{"GET", base + "/{id}", by.bearer(respondOK(a.find, showAddress), fabric.SAT, fabric.Guest, fabric.Invite)},
	}
}

// list serves GET /api/fabric/addresses.
func (a addressAPI) list(w http.ResponseWriter, r *http.Request, t fabric.Token) error {
	q := r.URL.Query()
	asked, err := web.ReadPage(q)
	filter, filterErr := readFilter(q)
	if err := errors.Join(err, filterErr); err != nil {
		return err
	}
	p, err := a.addresses.List(r.Context(), t, filter, asked.Query)
	if err != nil {
		return err
	}
	return web.AnswerPage(w, r, asked, p, showAddress, filters...)
}

// readFilter reads the filter and the order of an address list from the query. It reports
// every invalid parameter, not only the first.
func readFilter(q url.Values) (fabric.AddressFilter, error) {
	f := fabric.AddressFilter{Type: q.Get("type"), Name: q.Get("name"), DisplayName: q.Get("display_name")}
	errs := []error{f.Check()}
	switch q.Get("sort_by") {
	case "", "created_at":
	case "name":
		f.ByName = true
	default:
		errs = append(errs, problem.BadParam("sort_by", "sort_by must be name or created_at"))
	}

	order := q.Get("sort_order")
	switch order {
	case "", "asc":
	case "desc":
		f.Descending = true
	default:
		errs = append(errs, problem.BadParam("sort_order", "sort_order must be asc or desc"))
	}

	if order != "" && q.Get("sort_by") == "" {
		errs = append(errs, &problem.Error{
			Kind:    problem.Invalid,
			Code:    "sort_order_validations",
			Param:   "sort_order",
			Message: "sort_order requires sort_by",
		})
	}

	return f, errors.Join(errs...)
}

// find serves GET /api/fabric/addresses/{id}.
func (a addressAPI) find(r *http.Request, t fabric.Token) (fabric.Address, error) {
	return a.addresses.Find(r.Context(), t, r.PathValue("id"))
}

package rest

import (
	"encoding/json"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

const resources = "/api/fabric/resources/"

// A kindAPI serves the resources of one kind.
type kindAPI struct {
	*API
	kind *kinds.Kind
}

// kindRoutes lists the routes of a kind.
func (a *API) kindRoutes(k *kinds.Kind) []route {
	c, base := kindAPI{a, k}, resources+k.Path
	all := []route{
		{"GET", base, a.project(c.list)},
		{"DELETE", base + "/{id}", a.project(c.delete)},
		{"GET", base + "/{id}", a.project(c.get)},
		{"PATCH", base + "/{id}", a.project(c.update)},
		{"PUT", base + "/{id}", a.project(c.update)},
		{"GET", base + "/{id}/addresses", a.project(c.listAddresses)},
	}

	if k.Create == "" {
		all = append(all, route{"POST", base, a.project(c.create)})
	}
	if k.Versions {
		all = append(all, c.versionRoutes()...)
	}
	if k.Under() != k.Path {
		all = append(all, route{"GET", resources + k.Under() + "/{id}/addresses", a.project(c.listAddresses)})
	}

	return all
}

// create serves POST /api/fabric/resources/{kind}.
func (c kindAPI) create(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	sent, err := web.Members(r)
	if err != nil {
		return err
	}
	made, err := c.fabric.Resources.Create(r.Context(), by.ProjectID, c.kind, sent)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, c.show(made))
}

// list serves GET /api/fabric/resources/{kind}.
func (c kindAPI) list(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.Resource], error) {
		return c.fabric.Resources.List(r.Context(), by.ProjectID, c.kind, q)
	}, c.show)
}

// get serves GET /api/fabric/resources/{kind}/{id}.
func (c kindAPI) get(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	found, err := c.fabric.Resources.Find(r.Context(), by.ProjectID, c.kind, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, c.show(found))
}

// update serves PUT and PATCH /api/fabric/resources/{kind}/{id}. Members that are not sent
// are left unchanged.
func (c kindAPI) update(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if _, err := c.fabric.Resources.Find(r.Context(), by.ProjectID, c.kind, r.PathValue("id")); err != nil {
		return err
	}
	sent, err := web.Members(r)
	if err != nil {
		return err
	}
	changed, err := c.fabric.Resources.Update(r.Context(), by.ProjectID, c.kind, r.PathValue("id"), sent)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, c.show(changed))
}

// delete serves DELETE /api/fabric/resources/{kind}/{id}.
func (c kindAPI) delete(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if err := c.fabric.Resources.Delete(r.Context(), by.ProjectID, c.kind, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listAddresses serves GET /api/fabric/resources/{kind}/{id}/addresses.
func (c kindAPI) listAddresses(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if _, err := c.fabric.Resources.Find(r.Context(), by.ProjectID, c.kind, r.PathValue("id")); err != nil {
		return err
	}
	return c.answerAddresses(w, r, by)
}

// show returns the document of a resource in the form that its kind uses, flat or nested.
func (c kindAPI) show(r fabric.Resource) json.RawMessage {
	if c.kind.Flat {
		return fabric.FlatDocument(c.kind, r)
	}
	return fabric.Document(c.kind, r)
}

// showThing returns the document of a subscriber or of a resource of any kind.
func (a *API) showThing(t fabric.Thing) any {
	if t.Subscriber != nil {
		return fabric.DocumentOf(*t.Subscriber)
	}
	return fabric.Document(a.fabric.Resources.KindOf(*t.Resource), *t.Resource)
}

// listThings serves GET /api/fabric/resources.
func (a *API) listThings(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.Thing], error) {
		return a.fabric.Resources.ListThings(r.Context(), by.ProjectID, q)
	}, a.showThing)
}

// getThing serves GET /api/fabric/resources/{id}.
func (a *API) getThing(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	t, err := a.fabric.Resources.FindThing(r.Context(), by.ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, a.showThing(t))
}

// deleteThing serves DELETE /api/fabric/resources/{id}.
func (a *API) deleteThing(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if err := a.fabric.Resources.DeleteThing(r.Context(), by.ProjectID, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// getOfThing serves GET /api/fabric/resources/{id}/addresses. The last segment is a
// wildcard because the routes of kinds have an id in its place.
func (a *API) getOfThing(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if r.PathValue("what") != "addresses" {
		return problem.NoSuch("path")
	}
	return a.answerAddresses(w, r, by)
}

// answerAddresses answers with the addresses of the resource named in the path.
func (a *API) answerAddresses(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.Address], error) {
		return a.fabric.Resources.ListAddresses(r.Context(), by.ProjectID, r.PathValue("id"), q)
	}, showAddress)
}

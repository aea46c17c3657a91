package dashboard

import (
	"cmp"
	"net/http"

	"github.com/selvage/selvage/fabric"
)

// ingestKeyPages serves the pages that list, create and revoke ingest keys.
type ingestKeyPages struct {
	*site
}

// An ingestKeyRow is a row in the list of ingest keys.
type ingestKeyRow struct {
	fabric.IngestKey
	Title  string
	Status status
}

func (v *visit) ingestKeyRow(k fabric.IngestKey) ingestKeyRow {
	row := ingestKeyRow{
		IngestKey: k,
		Title:     cmp.Or(k.Name, k.Prefix+"…"),
		Status:    status{Kind: "good", Word: "Active"},
	}
	switch {
	case !k.Revoked.IsZero():
		row.Status = status{Kind: "bad", Word: "Revoked"}
	case !k.Expires.IsZero() && !v.now.Before(k.Expires):
		row.Status = status{Word: "Expired"}
	}
	return row
}

// An ingestKeysPage lists ingest keys, and has a form that creates one.
type ingestKeysPage struct {
	foundList[ingestKeyRow]
	Made   string // URL that contains the key that was just created
	Name   string
	Faults faults
}

// listIngestKeys serves GET /dashboard/projects/{project}/ingest-keys.
func (a *ingestKeyPages) listIngestKeys(v *visit) error {
	return a.ingestKeysPage(v, http.StatusOK, ingestKeysPage{})
}

func (a *ingestKeyPages) ingestKeysPage(v *visit, code int, p ingestKeysPage) error {
	f := v.finder("Name or id", "fs1", "")
	found, err := a.Fabric.IngestKeys.Search(v.r.Context(), v.project.ID, f.Query, v.query())
	if err != nil {
		return err
	}
	p.foundList = foundList[ingestKeyRow]{listOf(v, found, v.ingestKeyRow), f}
	return a.page(v, code, "Ingest keys", "ingest_keys", p)
}

// createIngestKey serves POST /dashboard/projects/{project}/ingest-keys. The secret is shown only
// once.
func (a *ingestKeyPages) createIngestKey(v *visit) error {
	p := ingestKeysPage{Name: v.form.Get("name")}
	_, secret, err := a.Fabric.IngestKeys.Create(v.r.Context(), v.project.ID, p.Name, nil)
	var wrong bool
	p.Faults, wrong = describeFaults(err, "name")
	if wrong {
		return a.ingestKeysPage(v, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	v.notice = "Ingest key created. Copy its URL now: it is not shown again."
	return a.ingestKeysPage(v, http.StatusOK, ingestKeysPage{Made: a.PublicURL + "/ingest/" + secret + "/"})
}

// revokeIngestKey serves POST /dashboard/projects/{project}/ingest-keys/{id}/revoke.
func (a *ingestKeyPages) revokeIngestKey(v *visit) error {
	if err := a.Fabric.IngestKeys.Revoke(v.r.Context(), v.project.ID, v.r.PathValue("id")); err != nil {
		return err
	}
	return v.redirect(v.base() + "/ingest-keys?done=ingestrevoked")
}

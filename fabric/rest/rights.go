package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// exportSubscriber serves GET /api/fabric/resources/subscribers/{id}/export. Credentials
// without Voice cannot open recordings, so their export shows shortened recording Sids.
func (a *API) exportSubscriber(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	e, err := a.fabric.ExportSubscriber(r.Context(), by.ProjectID, r.PathValue("subscriber"))
	if err != nil {
		return err
	}
	if !by.Rights.Has(fabric.Voice) {
		e.HideSids()
	}
	web.NoStore(w)
	return web.JSON(w, http.StatusOK, e)
}

// eraseSubscriber serves POST /api/fabric/resources/subscribers/{id}/erase. It also deletes
// recordings, so it needs Voice in addition to Management.
func (a *API) eraseSubscriber(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if !by.Rights.Has(fabric.Voice) {
		return problem.NoCredentials()
	}
	e, err := a.fabric.Subscribers.Erase(r.Context(), by.ProjectID, r.PathValue("subscriber"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, e)
}

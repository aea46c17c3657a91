package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/web"
)

// exportSubscriber serves GET /api/fabric/resources/subscribers/{id}/export.
func (a *API) exportSubscriber(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	e, err := a.fabric.ExportSubscriber(r.Context(), by.ProjectID, r.PathValue("subscriber"))
	if err != nil {
		return err
	}
	web.NoStore(w)
	return web.JSON(w, http.StatusOK, e)
}

// eraseSubscriber serves POST /api/fabric/resources/subscribers/{id}/erase.
func (a *API) eraseSubscriber(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	e, err := a.fabric.EraseSubscriber(r.Context(), by.ProjectID, r.PathValue("subscriber"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, e)
}

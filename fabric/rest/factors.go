package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
)

type factorResponse struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Name      string  `json:"name"`
	BackedUp  bool    `json:"backed_up"`
	Left      int     `json:"left"`
	CreatedAt string  `json:"created_at"`
	UsedAt    *string `json:"used_at"`
}

func showFactor(f factor.Factor) factorResponse {
	return factorResponse{f.ID, f.Type, f.Name, f.BackedUp, f.Left, iso(f.Created), isoOrNull(f.Used)}
}

// listFactors serves GET /api/fabric/resources/subscribers/{id}/factors.
func (a *API) listFactors(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[factor.Factor], error) {
		return a.fabric.Subscribers.ListFactors(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
	}, showFactor)
}

// removeFactor serves DELETE /api/fabric/resources/subscribers/{id}/factors/{factor}.
func (a *API) removeFactor(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return gone(w, a.fabric.Subscribers.RemoveFactor(
		r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id")))
}

package laml

import (
	"net/http"

	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// listTranscriptions serves GET /Recordings/{Sid}/Transcriptions. The list is always empty.
func (a *API) listTranscriptions(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	if _, err := a.recordings.Find(r.Context(), o, r.PathValue("file")); err != nil {
		return err
	}
	q, err := parseListQuery(r)
	if err != nil {
		return err
	}
	q.path += "/" + r.PathValue("file") + "/Transcriptions"
	none := make([]struct{}, 0)
	return web.JSON(w, http.StatusOK, transcriptions{q.neighbors("", ""), none})
}

// transcriptions is a page of transcriptions.
type transcriptions struct {
	paging
	Transcriptions []struct{} `json:"transcriptions"`
}

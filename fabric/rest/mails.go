package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/web"
)

// A mailedResponse names the recipient of a mail that was queued.
type mailedResponse struct {
	SubscriberID string `json:"subscriber_id"`
	Email        string `json:"email"`
}

func mailed(w http.ResponseWriter, s fabric.Subscriber, err error) error {
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusAccepted, mailedResponse{s.ID, s.Email})
}

type invitationRequest struct {
	Inviter string `json:"inviter"`
}

// inviteSubscriber serves POST /api/fabric/resources/subscribers/{id}/invitation. The body
// is optional.
func (a *API) inviteSubscriber(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	var in invitationRequest
	if r.ContentLength != 0 {
		var err error
		if in, err = web.Decode[invitationRequest](r); err != nil {
			return err
		}
	}
	s, err := a.fabric.Subscribers.Invite(r.Context(), by.ProjectID, r.PathValue("subscriber"), in.Inviter)
	return mailed(w, s, err)
}

// verifySubscriber serves POST /api/fabric/resources/subscribers/{id}/verification.
func (a *API) verifySubscriber(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	s, err := a.fabric.Subscribers.Verify(r.Context(), by.ProjectID, r.PathValue("subscriber"))
	return mailed(w, s, err)
}

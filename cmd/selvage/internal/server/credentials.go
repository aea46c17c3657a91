package server

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// caller returns who calls the recordings API: a project by its API key or by a
// service's token, or a subscriber by a token. Each needs the scope Voice.
func (a *App) caller(r *http.Request) (recordings.Owner, error) {
	if projectID, key, ok := web.Basic(r); ok {
		k, err := a.Fabric.APIKeys.Authenticate(r.Context(), projectID, key)
		if err != nil {
			return recordings.Owner{}, err
		}
		audit.As(r.Context(), audit.APIKey, k.ID)
		if !k.Has(fabric.Voice) {
			return recordings.Owner{}, problem.NoCredentials()
		}
		return recordings.Owner{ProjectID: k.ProjectID}, a.admit(r, k.ID)
	}
	raw, ok := web.Bearer(r)
	if !ok && a.pages != nil && r.Header.Get("Authorization") == "" {
		projectID := r.PathValue("AccountSid")
		return recordings.Owner{ProjectID: projectID}, a.pages.Caller(r, projectID)
	}
	if !ok {
		return recordings.Owner{}, problem.NoCredentials()
	}
	t, err := a.IDP.Tokens.Open(r.Context(), raw)
	if err != nil {
		return recordings.Owner{}, err
	}
	if !t.Has(fabric.Voice) || t.Kind != fabric.Service && t.SubscriberID == "" {
		return recordings.Owner{}, problem.NoCredentials()
	}
	if t.SubscriberID != "" {
		audit.As(r.Context(), audit.Subscriber, t.SubscriberID)
	} else {
		audit.As(r.Context(), audit.Client, t.ClientID)
	}
	return recordings.Owner{ProjectID: t.ProjectID, SubscriberID: t.SubscriberID}, a.admit(r, t.Caller())
}

package main

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings/laml"
)

// caller gives who calls the recordings API: a project by its API key or by a
// service's token, or a subscriber by a token. Each needs the scope Voice.
func (a *app) caller(r *http.Request) (laml.Caller, error) {
	if projectID, key, ok := web.Basic(r); ok {
		k, err := a.fabric.Authenticate(r.Context(), projectID, key)
		if err != nil {
			return laml.Caller{}, err
		}
		if !k.Has(fabric.Voice) {
			return laml.Caller{}, problem.NoCredentials()
		}
		return laml.Caller{ProjectID: k.ProjectID}, nil
	}
	raw, ok := web.Bearer(r)
	if !ok {
		return laml.Caller{}, problem.NoCredentials()
	}
	t, err := a.idp.OpenAccessToken(r.Context(), raw)
	if err != nil {
		return laml.Caller{}, err
	}
	if !t.Has(fabric.Voice) || t.Kind != fabric.Service && t.SubscriberID == "" {
		return laml.Caller{}, problem.NoCredentials()
	}
	return laml.Caller{ProjectID: t.ProjectID, SubscriberID: t.SubscriberID}, nil
}

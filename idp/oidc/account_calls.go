package oidc

import (
	"net/http"

	"github.com/selvage/selvage/templates"
)

// showCalls shows whether the subscriber's calls are recorded, including those with people whose
// own setting is off. Only operators and backends can change the setting.
func showCalls(ac *account, r *http.Request, v visit, page *templates.AccountPage) (err error) {
	page.Recorded, err = ac.Fabric.RecordsCall(r.Context(), v.ProjectID, v.SubscriberID)
	return err
}

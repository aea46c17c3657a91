package oidc

import (
	"net/http"

	"github.com/selvage/selvage/templates"
)

// showCalls shows whether the subscriber's calls are recorded, even with somebody who has the setting
// off. Operators and backends alone change it.
func showCalls(ac *account, r *http.Request, v visit, page *templates.AccountPage) (err error) {
	page.Recorded, err = ac.Fabric.RecordsCall(r.Context(), v.ProjectID, v.SubscriberID)
	return err
}

package rest

import (
	"net/http"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// filters are the query parameters that select a list. Links to other pages keep them.
var filters = []string{"type", "display_name", "name", "sort_by", "sort_order", "state", "action", "outcome",
	"actor_id", "target_id", "since", "until"}

// paged answers with the requested page of a list.
func paged[T, U any](
	w http.ResponseWriter, r *http.Request, list func(page.Query) (page.Page[T], error), show func(T) U,
) error {
	asked, err := web.ReadPage(r.URL.Query())
	if err != nil {
		return err
	}
	p, err := list(asked.Query)
	if err != nil {
		return err
	}
	return web.AnswerPage(w, r, asked, p, show, filters...)
}

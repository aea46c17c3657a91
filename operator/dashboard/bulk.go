package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/recordings"
)

// maxBulk is the maximum number of rows that one change may affect. It is the size of a page of a
// list.
const maxBulk = page.DefaultSize

// A bulkPage asks for confirmation to change the selected rows of a list.
type bulkPage struct {
	Title, Text, Button string
	Action, Do, Back    string
	Danger              bool
	IDs                 []string
	Names               []string
	changed             string // names the notice about the change
	change              func(id string) error
	nameOf              func(id string) (string, error)
}

// bulk serves the form for the selected rows of a list. It first asks for confirmation, and then
// changes each row. Rows that no longer exist or that cannot be changed now are skipped.
func (a *site) bulk(v *visit, p bulkPage) error {
	p.IDs = slices.Compact(slices.Sorted(slices.Values(v.form["id"])))
	if len(p.IDs) == 0 {
		return v.redirect(p.Back + "?done=noneselected")
	}
	if len(p.IDs) > maxBulk {
		return problem.BadParam("id", "at most %d rows can be changed at once", maxBulk)
	}

	if v.form.Get("confirm") != "yes" {
		return a.confirmBulk(v, p)
	}

	changed, refused := 0, 0
	for _, id := range p.IDs {
		err := p.change(id)
		first := problem.First(err)
		switch {
		case err == nil:
			changed++
		case errors.Is(err, problem.NotFound): // another operator deleted the row
		case first != nil && (first.Kind == problem.Conflict || first.Kind == problem.Invalid):
			refused++
		default:
			return err
		}
	}
	return v.redirect(fmt.Sprintf("%s?done=%s&n=%d&refused=%d", p.Back, p.changed, changed, refused))
}

// confirmBulk asks whether to change the selected rows. It leaves out rows that no longer exist.
func (a *site) confirmBulk(v *visit, p bulkPage) error {
	for _, id := range p.IDs {
		name, err := p.nameOf(id)
		if errors.Is(err, problem.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		p.Names = append(p.Names, name)
	}
	return a.page(v, http.StatusOK, p.Title, "bulk", p)
}

// counted replaces {n} in a notice about several rows, and adds the number of rows that could not
// be changed.
func (v *visit) counted(text string) string {
	number := func(name string) int {
		n, err := strconv.Atoi(v.r.URL.Query().Get(name))
		if err != nil || n < 0 || n > maxBulk {
			return 0
		}
		return n
	}
	text = strings.ReplaceAll(text, "{n}", strconv.Itoa(number("n")))
	if n := number("refused"); n > 0 {
		text += " " + v.say(words.Textf("%s could not be changed.", n))
	}
	return text
}

// bulkRecordings serves POST /dashboard/projects/{project}/recordings/bulk.
func (a *recordingPages) bulkRecordings(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	owner, ctx := recordings.Owner{ProjectID: v.project.ID}, v.r.Context()
	hold := func(reason string) func(string) error {
		return func(id string) error {
			_, err := a.Recordings.Mark(ctx, v.project.ID, id, recordings.MarkInput{Hold: &reason})
			return err
		}
	}

	var p bulkPage
	switch v.form.Get("do") {
	case "hold":
		p = bulkPage{
			Do:      "hold",
			Title:   "Put recordings on hold",
			Button:  "Put on hold",
			Text:    "Nobody can delete these recordings until they are released. Give the reason on the page of each.",
			changed: "recordingsheld",
			change:  hold("put on hold in the dashboard"),
		}
	case "release":
		p = bulkPage{
			Do:      "release",
			Title:   "Release recordings",
			Button:  "Release",
			Text:    "These recordings can be deleted again. Retention rules apply to them within an hour.",
			changed: "recordingsreleased",
			change:  hold(""),
		}
	default:
		p = bulkPage{
			Do:      "delete",
			Title:   "Delete recordings",
			Button:  "Delete recordings",
			Danger:  true,
			Text:    "The media is removed within a minute. This cannot be undone. Recordings on hold are left out.",
			changed: "recordingsdeleted",
			change:  func(id string) error { return a.Recordings.Delete(ctx, v.project.ID, id) },
		}
	}
	p.Action, p.Back = v.base()+"/recordings/bulk", v.base()+"/recordings"
	p.nameOf = func(id string) (string, error) {
		r, err := a.Recordings.Find(ctx, owner, id)
		if err != nil {
			return "", err
		}
		row := v.recordingRow(r)
		return row.Title + " " + row.Who, nil
	}
	return a.bulk(v, p)
}

// bulkSubscribers serves POST /dashboard/projects/{project}/subscribers/bulk. The field do names
// the action for the selected subscribers.
func (a *subscriberPages) bulkSubscribers(v *visit) error {
	ctx, subscribers := v.r.Context(), a.Fabric.Subscribers
	setDisabled := func(disabled bool) func(string) error {
		return func(id string) error {
			_, err := subscribers.Update(ctx, v.project.ID, id, fabric.SubscriberInput{Disabled: &disabled})
			return err
		}
	}

	var p bulkPage
	switch v.form.Get("do") {
	case "disable":
		p = bulkPage{
			Do:      "disable",
			Title:   "Disable subscribers",
			Button:  "Disable subscribers",
			Danger:  true,
			Text:    "All their sessions and tokens end. Nobody can sign in to these accounts until you enable them.",
			changed: "subscribersdisabled",
			change:  setDisabled(true),
		}
	case "enable":
		p = bulkPage{
			Do:      "enable",
			Title:   "Enable subscribers",
			Button:  "Enable subscribers",
			Text:    "These subscribers can sign in again.",
			changed: "subscribersenabled",
			change:  setDisabled(false),
		}
	case "signout":
		p = bulkPage{
			Do:      "signout",
			Title:   "Sign out subscribers",
			Button:  "Sign out everywhere",
			Text:    "All their sessions and tokens end. They can sign in again immediately.",
			changed: "subscriberssignedout",
			change:  func(id string) error { return subscribers.Revoke(ctx, v.project.ID, id) },
		}
	default:
		return problem.BadParam("do", "choose what to do with the selected subscribers")
	}
	p.Action, p.Back = v.base()+"/subscribers/bulk", v.base()+"/subscribers"
	p.nameOf = func(id string) (string, error) {
		s, err := subscribers.Find(ctx, v.project.ID, id)
		if err != nil {
			return "", err
		}
		return v.subscriberRow(s).Title, nil
	}
	return a.bulk(v, p)
}

package dashboard

import (
	"errors"
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
		for _, id := range p.IDs {
			name, err := p.nameOf(id)
			if problem.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil {
				p.Names = append(p.Names, name)
			}
		}
		return a.page(v, http.StatusOK, p.Title, "bulk", p)
	}

	done, refused := 0, 0
	for _, id := range p.IDs {
		err := p.change(id)
		first := problem.First(err)
		switch {
		case err == nil:
			done++
		case errors.Is(err, problem.NotFound): // another operator deleted the row
		case first != nil && (first.Kind == problem.Conflict || first.Kind == problem.Invalid):
			refused++
		default:
			return err
		}
	}
	return v.redirect(p.Back + "?done=" + p.changed + "&n=" + strconv.Itoa(done) + "&refused=" + strconv.Itoa(refused))
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
	p := bulkPage{Action: v.base() + "/recordings/bulk", Back: v.base() + "/recordings", Do: v.form.Get("do"),
		nameOf: func(id string) (string, error) {
			r, err := a.Recordings.Find(ctx, owner, id)
			row := v.recordingRow(r)
			return row.Title + " " + row.Who, err
		}}
	hold := func(reason string) func(string) error {
		return func(id string) error {
			_, err := a.Recordings.Mark(ctx, v.project.ID, id, recordings.MarkInput{Hold: &reason})
			return err
		}
	}

	switch p.Do {
	case "hold":
		p.Title, p.Button, p.changed = "Put recordings on hold", "Put on hold", "recordingsheld"
		p.Text = "Nobody can delete these recordings until they are released. Give the reason on the page of each."
		p.change = hold("put on hold in the dashboard")
	case "release":
		p.Title, p.Button, p.changed = "Release recordings", "Release", "recordingsreleased"
		p.Text = "These recordings can be deleted again. Retention rules apply to them within an hour."
		p.change = hold("")
	default:
		p.Do, p.Danger = "delete", true
		p.Title, p.Button = "Delete recordings", "Delete recordings"
		p.Text = "The media is removed within a minute. This cannot be undone. Recordings on hold are left out."
		p.changed = "recordingsdeleted"
		p.change = func(id string) error { return a.Recordings.Delete(ctx, v.project.ID, id) }
	}
	return a.bulk(v, p)
}

// bulkSubscribers serves POST /dashboard/projects/{project}/subscribers/bulk. The field do names
// the action for the selected subscribers.
func (a *subscriberPages) bulkSubscribers(v *visit) error {
	p := bulkPage{Action: v.base() + "/subscribers/bulk", Back: v.base() + "/subscribers", Do: v.form.Get("do")}
	ctx, all := v.r.Context(), a.Fabric.Subscribers
	set := func(disabled bool) func(string) error {
		return func(id string) error {
			_, err := all.Update(ctx, v.project.ID, id, fabric.SubscriberInput{Disabled: &disabled})
			return err
		}
	}

	switch p.Do {
	case "disable":
		p.Title, p.Button, p.Danger = "Disable subscribers", "Disable subscribers", true
		p.Text = "All their sessions and tokens end. Nobody can sign in to these accounts until you enable them."
		p.change, p.changed = set(true), "subscribersdisabled"
	case "enable":
		p.Title, p.Button = "Enable subscribers", "Enable subscribers"
		p.Text = "These subscribers can sign in again."
		p.change, p.changed = set(false), "subscribersenabled"
	case "signout":
		p.Title, p.Button = "Sign out subscribers", "Sign out everywhere"
		p.Text = "All their sessions and tokens end. They can sign in again immediately."
		p.change = func(id string) error { return all.Revoke(ctx, v.project.ID, id) }
		p.changed = "subscriberssignedout"
	default:
		return problem.BadParam("do", "choose what to do with the selected subscribers")
	}

	p.nameOf = func(id string) (string, error) {
		s, err := all.Find(ctx, v.project.ID, id)
		return v.subscriberRow(s).Title, err
	}
	return a.bulk(v, p)
}

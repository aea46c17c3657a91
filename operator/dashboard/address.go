package dashboard

import (
	"io"
	"net/http"
	"strings"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/web"
)

// A liveHint says below an input at which address something new will be reached: a sentence, and
// while it is typed what a path of ours makes of the inputs of some names.
type liveHint struct {
	Text, Path string
	Names      string // with spaces between
}

// addressFields are the names of the fields of which a kind makes its address: the first that
// says anything counts.
func addressFields(k *kinds.Kind) []string {
	if k.AddressName == "" {
		return k.Name
	}
	return append([]string{k.AddressName}, k.Name...)
}

// addressInput returns the input of which a kind makes its address; nil for none.
func addressInput(k *kinds.Kind, all []input) *input {
	for _, name := range addressFields(k) {
		if at := find(all, name); at != nil {
			return at
		}
	}
	return nil
}

// addAddressHint has a form of something new say where it will be reached.
func (v *visit) addAddressHint(k *kinds.Kind, all []input) {
	context := "public"
	if k.Context != "" {
		context = k.Context
	}
	if at := addressInput(k, all); at != nil {
		at.Tells = &liveHint{
			Text: "Its address is made of it, in plain letters: “Team Standup” is reached at /" +
				context + "/team-standup.",
			Path: v.base() + "/kinds/" + k.Path + "/address", Names: strings.Join(addressFields(k), " "),
		}
	}
}

// previewAddress serves POST /dashboard/projects/{project}/kinds/{kind}/address: where a
// resource of such names would be reached, in a sentence.
func (a *resourcePages) previewAddress(v *visit) error {
	k, err := a.kind(v)
	if err != nil {
		return err
	}
	named := make(kinds.Values)
	for _, name := range addressFields(k) {
		named[name] = quoted(strings.TrimSpace(v.form.Get(name)))
	}
	path, taken, err := a.Fabric.Addresses.Preview(v.r.Context(), v.project.ID, k, named)
	return v.tell(path, taken, err)
}

// previewSubscriberAddress serves POST /dashboard/projects/{project}/subscribers/address.
func (a *subscriberPages) previewSubscriberAddress(v *visit) error {
	path, taken, err := a.Fabric.Addresses.PreviewSubscriber(v.r.Context(), v.project.ID, v.form.Get("email"))
	return v.tell(path, taken, err)
}

func (v *visit) tell(path string, taken bool, err error) error {
	if err != nil {
		return err
	}
	text := ""
	switch {
	case taken:
		text = path + " is another’s address, so this one gets a random end: " + path + "--…"
	case path != "":
		text = "It will be reached at " + path + ", which stays so when it is renamed."
	}
	web.NoStore(v.w)
	v.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.w.Header().Set("X-Content-Type-Options", "nosniff")
	v.w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(v.w, text) // the browser may have gone
	return nil
}

package dashboard

import (
	"net/http"
	"strings"

	"github.com/selvage/selvage/fabric"
)

// An addressRow is a row in a list of addresses.
type addressRow struct {
	fabric.Address
	TypeTitle   string // describes the type of the address
	ChannelText string // describes the channels of the address, in the reader's language
	ResourceURL string // page of the resource or subscriber that has the address
}

// listAddresses serves GET /dashboard/projects/{project}/addresses. The query parameter q
// restricts the list to addresses whose title contains it.
func (a *resourcePages) listAddresses(v *visit) error {
	search := v.finder("Title", "lobby", "name")
	filter := fabric.AddressFilter{DisplayName: search.Query}
	found, err := a.Fabric.Addresses.List(v.r.Context(), anyCaller(v), filter, v.query())
	if err != nil {
		return err
	}
	return a.page(v, http.StatusOK, "Addresses", "addresses", foundList[addressRow]{
		list:   listOf(v, found, v.addressRow),
		Finder: search,
	})
}

// anyCaller returns a token whose holder may call every address of the project.
func anyCaller(v *visit) fabric.Token {
	return fabric.Token{Kind: fabric.SAT, ProjectID: v.project.ID}
}

func (v *visit) addressRow(a fabric.Address) addressRow {
	return addressRow{
		Address:     a,
		TypeTitle:   addressTypes[a.Type],
		ChannelText: v.describeChannels(a.Channels),
		ResourceURL: v.thingURL(a.Type, a.ResourceID),
	}
}

// addressTypes describes the types of addresses.
var addressTypes = map[string]string{
	fabric.TypeApp:        "App",
	fabric.TypeRoom:       "Room",
	fabric.TypeCall:       "Call",
	fabric.TypeSubscriber: "Subscriber",
}

// channelTitles describes the channels of addresses.
var channelTitles = map[string]string{
	"audio":     "Audio",
	"messaging": "Messages",
	"video":     "Video",
}

// describeChannels returns the titles of channels in the reader's language.
func (v *visit) describeChannels(channels []string) string {
	titles := make([]string, len(channels))
	for i, name := range channels {
		titles[i] = v.say(channelTitles[name])
	}
	return strings.Join(titles, ", ")
}

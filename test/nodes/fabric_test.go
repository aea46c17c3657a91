package nodes

import (
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

const resources = "/api/fabric/resources/"

// TestFabricElsewhere creates and changes each kind of resource at one node, and deletes it at the
// other. Each node shows the other node's changes immediately, because both read the same rows.
func TestFabricElsewhere(t *testing.T) {
	rows(t)
	n := two(t)
	here, there := n.Each[0], n.Each[1]
	p := n.NewProject(t)
	sub := p.NewSubscriber(t)
	flow := create(t, here, p, resources+"call_flows", `{"title":"Flow"}`)

	tests := []struct{ path, body, change, name string }{
		{resources + "ai_agents", `{"name":"x","prompt":{"text":"hi"}}`, `{"name":"new"}`, "name"},
		{resources + "call_flows", `{"title":"x"}`, `{"title":"new","document_version":2}`, "title"},
		{resources + "conference_rooms", `{"name":"x"}`, `{"name":"new"}`, "name"},
		{resources + "cxml_scripts", `{"display_name":"x","contents":"<Response/>"}`,
			`{"display_name":"new"}`, "display_name"},
		{resources + "cxml_webhooks", `{"name":"x","primary_request_url":"https://a.example"}`,
			`{"name":"new"}`, "name"},
		{resources + "freeswitch_connectors", `{"name":"x","token":"5f3c1d52-8d1c-4d6e-9d4e-0d2a0e1b2c3d"}`,
			`{"name":"new"}`, "name"},
		{resources + "relay_applications", `{"name":"x","topic":"calls"}`, `{"name":"new"}`, "name"},
		{resources + "ring_groups", `{"name":"x","members":["/private/bob"]}`, `{"name":"new"}`, "name"},
		{resources + "sip_endpoints", `{"username":"x"}`, `{"username":"new"}`, "username"},
		{resources + "sip_gateways", `{"name":"x","uri":"sip.example","encryption":"default","ciphers":[],"codecs":[]}`,
			`{"name":"new"}`, "name"},
		{resources + "subscribers", `{"email":"x@example.com"}`, `{"display_name":"new"}`, "display_name"},
		{resources + "swml_scripts", `{"name":"x","contents":{"version":"1.0.0"}}`, `{"display_name":"new"}`,
			"display_name"},
		{resources + "swml_webhooks", `{"name":"x","primary_request_url":"https://a.example"}`,
			`{"name":"new"}`, "name"},
		{resources + "subscribers/" + sub.ID + "/sip_endpoints",
			`{"username":"x","password":"fathom-lantern"}`, `{"username":"new"}`, "username"},
		{"/api/fabric/sip_addresses", `{"name":"x","calling_handler_resource_id":"` + flow + `"}`,
			`{"name":"new"}`, "name"},
	}

	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			id := create(t, here, p, tt.path, tt.body)
			at := tt.path + "/" + id
			there.Get(t, at, p.Basic()).Want(t, 200)
			here.Do(t, "PATCH", at, p.Basic(), harness.JSON(tt.change)).Want(t, 200)
			if got := find(there.Get(t, at, p.Basic()).Want(t, 200).Object(t), tt.name); got != "new" {
				t.Errorf("after a change, %s is %v at the other node, want new", tt.name, got)
			}
			if listed := lists(t, there, p, tt.path, id); !listed {
				t.Error("the other node does not list the new object")
			}

			there.Do(t, "DELETE", at, p.Basic()).Want(t, 204)
			here.Get(t, at, p.Basic()).Want(t, 404)
			if lists(t, here, p, tt.path, id) {
				t.Error("the object is still listed after its deletion")
			}
		})
	}
}

// create creates an object at a node and returns its id.
func create(t *testing.T, node *harness.Server, p *harness.Project, path, body string) string {
	t.Helper()
	id, _ := node.Post(t, path, p.Basic(), harness.JSON(body)).Want(t, 200, 201).Object(t)["id"].(string)
	return id
}

// lists reports whether a node lists an object.
func lists(t *testing.T, node *harness.Server, p *harness.Project, path, id string) bool {
	t.Helper()
	var list struct{ Data []struct{ ID string } }
	node.Get(t, path+"?page_size=1000", p.Basic()).Want(t, 200).Read(t, &list)
	for _, item := range list.Data {
		if item.ID == id {
			return true
		}
	}
	return false
}

// find returns a member of an object in doc or, if there is none, of doc itself.
func find(doc map[string]any, name string) any {
	for _, member := range doc {
		if inner, ok := member.(map[string]any); ok && inner[name] != nil {
			return inner[name]
		}
	}
	return doc[name]
}

// TestAssignedElsewhere deploys versions of a call flow at both nodes, and assigns it at one node.
// Each node sees the other node's changes: it lists the versions, and does not delete the assigned
// flow.
func TestAssignedElsewhere(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	n := two(t)
	here, there := n.Each[0], n.Each[1]
	p := n.NewProject(t)

	flow := create(t, here, p, resources+"call_flows", `{"title":"Flow"}`)
	versions := resources + "call_flow/" + flow + "/versions"
	first := create(t, here, p, versions, `{"document_version":1}`)

	// If two changes contain the same version, the second is refused, whichever node it reaches.
	there.Do(t, "PUT", resources+"call_flows/"+flow, p.Basic(),
		harness.JSON(`{"flow_data":{"a":1},"document_version":2}`)).Want(t, 200)
	here.Do(t, "PUT", resources+"call_flows/"+flow, p.Basic(),
		harness.JSON(`{"flow_data":{"a":2},"document_version":2}`)).Want(t, 422)

	again := create(t, there, p, versions, `{"call_flow_version_id":"`+first+`"}`)
	if !lists(t, here, p, versions, again) {
		t.Error("a version deployed at one node is not listed at the other node")
	}

	here.Post(t, resources+flow+"/phone_routes", p.Basic(),
		harness.JSON(`{"phone_route_id":"5f3c1d52-8d1c-4d6e-9d4e-0d2a0e1b2c3d","handler":"calling"}`)).Want(t, 200)
	there.Do(t, "DELETE", resources+flow, p.Basic()).Want(t, 422)
}

// TestAddressesElsewhere shows that a SAT at one node lists the addresses that the other node
// creates, renames and deletes. Addresses of disabled subscribers are not listed.
func TestAddressesElsewhere(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	n := two(t)
	here, there := n.Each[0], n.Each[1]
	p := n.NewProject(t)
	sat := p.NewSAT(t, "ada")

	wants := func(what, name string) {
		t.Helper()
		harness.WithinASecond(t, what+" at the other node", func() error {
			var list struct {
				Data []struct {
					DisplayName string `json:"display_name"`
				}
			}
			there.Get(t, "/api/fabric/addresses?sort_by=created_at&sort_order=desc&page_size=1",
				harness.Bearer(sat.Token)).Want(t, 200).Read(t, &list)
			if len(list.Data) != 1 || list.Data[0].DisplayName != name {
				return fmt.Errorf("the newest address is %+v, want %s", list.Data, name)
			}
			return nil
		})
	}

	wants("the first address", "ada")
	room := create(t, here, p, resources+"conference_rooms", `{"name":"Room"}`)
	wants("a new address", "Room")
	here.Do(t, "PATCH", resources+"conference_rooms/"+room, p.Basic(), harness.JSON(`{"name":"Hall"}`)).Want(t, 200)
	wants("a renamed address", "Hall")
	here.Do(t, "DELETE", resources+room, p.Basic()).Want(t, 204)
	wants("a deleted address", "ada")

	bob := p.NewSubscriber(t)
	wants("the address of a new subscriber", "Ada L.")
	here.Command(t, "", "subscriber", "update", bob.ID, "--disabled")
	wants("the address of a disabled subscriber", "ada")
	here.Command(t, "", "subscriber", "update", bob.ID, "--disabled=false")
	wants("the address of an enabled subscriber", "Ada L.")
}

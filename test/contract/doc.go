// Package contract asks for every operation of the OpenAPI document that a server
// serves, and looks for each of its documented statuses: what the document says
// the server does, and the server does nothing else.
package contract

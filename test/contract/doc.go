// Package contract calls every operation of the OpenAPI document that a server serves and provokes
// each documented status. It shows that the server does what the document says and nothing else.
package contract

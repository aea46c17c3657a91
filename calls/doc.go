// Package calls connects subscribers with each other: it holds calls and their legs, and
// decides who may call whom and which events each client receives.
//
// A call has legs, one for each client that takes part. The first is the caller's. A call to
// a subscriber rings all of the subscriber's online sockets, each as a leg of its own; the
// first one to answer stays, and the others are told. A call goes through these states:
//
//	created → ringing → answered → ended
//	        ↘ answered (echo)
//
// and may end in each of them, with a [Cause].
//
// Clients send a [Command] and receive an [Event]. Package fabric/relay translates both from and
// to the protocol of browser SDKs. An [Engine] carries the media. The package knows
// neither descriptions of media (SDP) nor packets.
//
// What happens to one call happens one after the other, in its [mailbox]. So rules need no
// locks, and events of a call reach each client in the order in which they happened.
package calls

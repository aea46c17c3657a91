// Package calls connects subscribers with each other. It holds calls and their legs, decides who
// may call whom, and sends each client its events.
//
// A call has one leg for each client that takes part. The first leg belongs to the caller. A call
// to a subscriber rings the subscriber's online sockets and phones, each as a separate leg. The
// first leg to answer remains, and the others are notified. A call goes through these states:
//
//	created → ringing → answered → ended
//	        ↘ answered (echo, room or script)
//
// It may end in any state, with a [Cause].
//
// Clients send a [Command] and receive an [Event]. Package fabric/relay translates both from and to
// the protocol of browser SDKs. An [Engine] carries the media. Package calls interprets neither
// media descriptions (SDP) nor packets.
//
// Everything that changes a call runs in its [mailbox], one function at a time. Therefore, the
// rules need no locks, and each client receives the events of a call in the order in which they
// happened.
package calls

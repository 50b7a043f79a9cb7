// Floods measures what a client makes of a limit that nobody told it, with weir and with
// what contrib has for gotd programs:
//
//	go run ./floods                # all contenders, 90 s each
//	go run ./floods -contender weir -limit 10 -burst 1 -for 10m
//	go run ./floods -json >result.json
//
// Each contender gets a data centre of its own (package localdc, on loopback) that takes so
// many messages a second from the account, answers what exceeds that with FLOOD_WAIT, and makes
// a flood a second longer for each call inside it. 32 workers send to 100 chats in turn,
// without a pause. Weir is configured for -configured messages a second; the others have
// nothing to be configured.
//
// Everything is counted by the data centre: what came through as a share of what the limit
// allows (without its burst), how often it was flooded, and how many calls came inside a flood
// of which the client had been told for 200 ms or more. The first -settle of a run are told
// apart from the rest.
package main

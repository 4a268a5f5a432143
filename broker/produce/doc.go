// Package produce answers the requests that put messages into the broker: send, batch send, reply and send-back. It checks
// in RocketMQ's order, turns the request into a message, hands it to the write pipeline and answers from its completion.
package produce

"""
Language models that help memory, each in a role that the policy names.

    assistants        all roles: made from the policy, and made anew when it changes
    model             the client of one model: asks, retries, checks the answer, counts what it used
    request           a prompt as the body of a chat completion, in the forms that providers take, and its answer, read
    budget            the daily caps of tokens and money
    query_controller  plans how a question is looked up
    selector          orders what was found, by a model or by a `cross_encoder`

No model is named by default: then nothing here is made, nothing is sent, and no row is written. Whatever a model fails
at costs only its help (`AssistFault`). Its traffic goes to the provider directly, past everything that archives.
"""

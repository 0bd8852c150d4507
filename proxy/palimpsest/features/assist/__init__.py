"""
Language models that help memory, each in a role that the policy names.

    assistants   all roles: made from the policy, and made anew when it changes
    model        the client of one model: asks, retries, checks the answer, counts what it used
    request      a prompt as the body of a chat completion, in the forms that providers take
    answer       the answer's JSON, read and checked
    budget       the daily caps of tokens and money
    prompts/     what is asked, a file each
    item_writers what a model in the role of the writer keeps of conversations, checked against what was said

No model is named by default: then nothing here is made, nothing is sent, and no row is written. Whatever a model fails
at costs only its help (`AssistFault`). Its traffic goes to the provider directly, past everything that archives.
"""
